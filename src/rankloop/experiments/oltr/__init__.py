"""Online learning to rank from clicks on documents: the learners that papers compare, side by side."""
