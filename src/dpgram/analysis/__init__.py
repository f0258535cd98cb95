"""The analyst's door: a release in, fitted models with honest uncertainty out. Nothing here can reach a row of the release."""
