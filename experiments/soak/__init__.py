"""A busy office: many releases at once into one ledger, with kills, full disks and clocks that disagree -> a table in docs/ledger.md."""
