"""The parts that come with the product: PostgreSQL, Valkey, secrets, and the supervisor that keeps them running."""
