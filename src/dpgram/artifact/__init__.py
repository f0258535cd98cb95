"""The wall: what leaves the building. Below it only the custodian's doors can reach a row."""
