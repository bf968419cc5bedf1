"""What the service needs to know of an algorithm beyond the contract of a ranker."""
