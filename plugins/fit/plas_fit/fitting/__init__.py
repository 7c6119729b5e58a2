"""Fitting a loss law to trained models: robust regression, intervals, diagnostics, designs."""
