package command

import (
	"io"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// ReadOrders reads a file of orders.
func ReadOrders(in io.Reader, column string) ([]string, error) {
	list, err := adminapi.ReadOrders(in, "file", adminapi.OrderColumns{Order: column})
	if err != nil {
		return nil, err
	}
	return list.Names, nil
}
