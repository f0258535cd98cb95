"""Forecasts against outcomes: ``make forecast-study`` runs it."""
