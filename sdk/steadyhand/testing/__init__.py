"""What those who write a connector test it with: `pytest --pyargs steadyhand.testing.connector --connector …`.

The only part of this package that needs pytest.
"""
