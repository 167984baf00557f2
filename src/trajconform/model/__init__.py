"""What both formats share: exact arrays, frames, the reply form, violations and rules."""
