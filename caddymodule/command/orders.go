package command

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// confirmFrom confirms what a file names. The whole file is read and checked first.
func confirmFrom(c *call, name string) error {
	list, err := c.openOrders(name, adminapi.OrderColumns{Order: c.text("column"), NamesOnly: true})
	if err != nil {
		return err
	}
	var sum adminapi.BulkAnswer
	for part := range slices.Chunk(list.Names, adminapi.MaxBulk) {
		answer, err := c.bulk("confirm", &adminapi.BulkRequest{Names: part, DryRun: c.flag("dry-run")})
		if err != nil {
			return unlessDone(&sum, err)
		}
		addUp(&sum, answer)
	}
	err = c.report("confirm", &sum)
	left := sum.InDoubt
	if sum.DryRun {
		left -= int64(sum.FromInDoubt)
	}
	c.printf("in doubt and not in the file: %d\n", max(left, 0))
	return err
}

// openOrders reads the orders in a file, - is the standard input. A file without any is an error.
func (c *call) openOrders(name string, columns adminapi.OrderColumns) (*adminapi.OrderList, error) {
	in, made := c.cmd.InOrStdin(), time.Now()
	if name == "-" {
		name = "standard input"
	} else {
		f, err := os.Open(name)
		if err != nil {
			return nil, usageError{err}
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil {
			made = info.ModTime()
		}
		in = f
	}
	list, err := adminapi.ReadOrders(in, name, columns)
	if err != nil {
		return nil, columnFault(err)
	}
	if list.Made = made; len(list.Names) == 0 {
		return nil, fmt.Errorf("%s names no order", name)
	}
	return list, nil
}

// columnFault makes an error about a column one of the command line.
func columnFault(err error) error {
	if _, ok := errors.AsType[*adminapi.ColumnError](err); ok {
		return usageError{err}
	}
	return err
}
