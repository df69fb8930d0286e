package caddymodule

import "fmt"

// inputError is a mistake of the caller.
type inputError struct{ error }

func (e inputError) Unwrap() error { return e.error }

// badInput makes an inputError, as fmt.Errorf does.
func badInput(format string, args ...any) error { return inputError{fmt.Errorf(format, args...)} }
