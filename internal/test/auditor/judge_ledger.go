package auditor

// JudgeLedger compares the ledger of a sale with its journal, which the ledger has caught up with.
func JudgeLedger(ledger []Movement, s *Shard) []Violation {
	if len(ledger) != len(s.Movements) {
		return []Violation{broken(Balance, "the ledger has %d movements of %s, the journal %d", len(ledger), s.Sale, len(s.Movements))}
	}
	for i, m := range s.Movements {
		if l := ledger[i]; l.String() != m.String() || l.Record != m.Record {
			return []Violation{broken(Balance, "the ledger and the journal differ: %v, %v", l, m)}
		}
	}
	return nil
}
