package command

import "io"

// ReadOrders reads a file of orders.
func ReadOrders(in io.Reader, column string) ([]string, error) { return readOrders(in, "file", column) }
