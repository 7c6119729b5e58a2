"""Typical efficiencies of classes of chips, for devices without a profile of their own."""
