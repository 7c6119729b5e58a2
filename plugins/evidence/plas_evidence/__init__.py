"""Accuracy of loss laws and of rules that need none on published trainings, or on a table of the user's, question by question."""
