"""The tests mirror the rooms of the code; conftest.py holds the doors to the database."""
