// Package combine joins operations that many goroutines ask for at the same time into few calls of
// Redis, and bounds how many wait.
package combine
