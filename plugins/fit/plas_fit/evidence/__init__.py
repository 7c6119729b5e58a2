"""What published trainings say of a law: the form that joins them, and a belief about it that rows of one's own change."""
