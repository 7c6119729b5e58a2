"""What published trainings, or a table of the user's, say of loss laws and of rules that need none, question by question."""
