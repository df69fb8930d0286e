package doctor

// notices examines whether operators are told what happens.
func (d *examination) notices() {
	if n := d.app.Notifier(); n != nil {
		ctx, cancel := d.call()
		defer cancel()
		n.Examine(ctx, &d.Diagnosis)
	}
}
