package request

import "fmt"

// Error is a mistake of the caller.
type Error struct{ error }

func (e Error) Unwrap() error { return e.error }

// Bad makes an Error, as fmt.Errorf does.
func Bad(format string, args ...any) error { return Error{fmt.Errorf(format, args...)} }
