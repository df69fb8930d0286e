package rig

// During runs work for as long as meanwhile goes on, and waits for its end.
func During(work func(stop <-chan struct{}), meanwhile func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		work(stop)
	}()
	defer func() {
		close(stop)
		<-done
	}()
	meanwhile()
}
