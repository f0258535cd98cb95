"""How uncertain an estimate is: from a release and a fit, never from rows."""
