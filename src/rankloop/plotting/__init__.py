"""How figures and pages look: one style, colours that stay with a learner, labels beside the lines."""
