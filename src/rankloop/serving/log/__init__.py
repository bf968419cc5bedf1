"""The append-only log: its records, the state that they add up to, snapshots, verification, export."""
