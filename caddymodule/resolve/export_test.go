package resolve

// Bodies are webhooks that are read.
type Bodies struct{ reading }

// Begin returns the status of the refusal; 0: there is room.
func (b *Bodies) Begin(client string) int {
	if no := b.begin(client); no != nil {
		return no.status
	}
	return 0
}

func (b *Bodies) End(client string) { b.end(client) }
