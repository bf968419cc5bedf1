"""Where the log is kept: memory, SQLite, PostgreSQL, and the checks that each of them passes."""
