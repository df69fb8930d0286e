package command

import "io"

// ReadOrders reads a file of orders.
func ReadOrders(in io.Reader, column string) ([]string, error) {
	list, err := readOrders(in, "file", orderColumnNames{order: column})
	if err != nil {
		return nil, err
	}
	return list.names, nil
}
