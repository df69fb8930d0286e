package command

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stockgate/stockgate/internal/sale"
)

// askedItems gets the items of a new sale.
type askedItems struct {
	file string // that is written
	csv  string // that has the items, as the file names it; empty: the file lists them
}

// ask gets the items from flags, or on the terminal.
func (i *askedItems) ask(a *asking, s *sale.Sale) error {
	flags := a.c.cmd.Flags()
	each, err := flags.GetStringArray("item")
	if err != nil {
		panic(err)
	}
	table := a.c.text("items")
	switch {
	case table != "" && len(each) > 0:
		return usageError{fmt.Errorf("--items and --item: give the items in one way")}
	case table != "":
		return a.mistaken("items", i.take(a, s, table))
	case len(each) > 0:
		for _, text := range each {
			at := strings.LastIndexByte(text, '=')
			if at < 0 {
				return usageError{fmt.Errorf("--item: %q is no item and its stock, such as A-1=100 or A-1=100:2", text)}
			}
			stock, most, _ := strings.Cut(text[at+1:], ":")
			if err := i.add(s, text[:at], stock, most); err != nil {
				return a.mistaken("item", err)
			}
		}
		return nil
	case a.in == nil:
		a.missing = append(a.missing, "--item or --items")
		return nil
	}
	return i.onTerminal(a, s)
}

// onTerminal asks for an item a line, until there is an empty one.
func (i *askedItems) onTerminal(a *asking, s *sale.Sale) error {
	a.say("Its items, one a line: SKU, stock and, if wanted, the most units of one order, such as A-1 100 2;\nor the name of a CSV file that has them. An empty line ends them.\n")
	for {
		line, err := a.line("Item: ")
		if err != nil {
			return err
		}
		words := strings.Fields(line)
		switch {
		case len(words) == 0 && len(s.Items) > 0:
			return nil
		case len(words) == 0:
			continue
		case len(words) == 1 && strings.EqualFold(filepath.Ext(line), ".csv"):
			if err = i.take(a, s, line); err == nil && len(s.Items) == 0 {
				return nil
			}
			if err == nil {
				i.csv, err = "", fmt.Errorf("there are items already: a file has all of them, or none")
			}
		case len(words) == 2:
			err = i.add(s, words[0], words[1], "")
		case len(words) == 3:
			err = i.add(s, words[0], words[1], words[2])
		default:
			err = fmt.Errorf("give a SKU, its stock and, if wanted, the most units of one order")
		}
		if err != nil {
			a.say("  %v\n", err)
		}
	}
}

// add adds an item.
func (i *askedItems) add(s *sale.Sale, sku, stock, most string) (err error) {
	item := sale.Item{SKU: sku}
	if item.Stock, err = strconv.ParseInt(stock, 10, 64); err != nil || item.Stock < 0 || item.Stock > sale.MaxUnits {
		return fmt.Errorf("%q is no number of units for the stock of %s", stock, sku)
	}
	if most != "" {
		if item.Max, err = strconv.ParseInt(most, 10, 64); err != nil || item.Max < 1 || item.Max > sale.MaxQuantity {
			return fmt.Errorf("%q is no number of units for one order of %s: 1 to %d", most, sku, sale.MaxQuantity)
		}
	}
	switch {
	case !sale.IsName(sku):
		return fmt.Errorf("%q is no SKU: 1 to %d printable ASCII characters without space", sku, sale.MaxName)
	case slices.ContainsFunc(s.Items, func(other sale.Item) bool { return other.SKU == sku }):
		return fmt.Errorf("%s is an item already", sku)
	}
	s.Items = append(s.Items, item)
	return nil
}

// take takes the items of a CSV file, which the sale's file is to name.
func (i *askedItems) take(a *asking, s *sale.Sale, table string) error {
	if !strings.EqualFold(filepath.Ext(table), ".csv") {
		return fmt.Errorf("%s: the name of a file with items ends in .csv", table)
	}
	name := besides(i.file, table)
	probe := *s
	probe.Items = nil
	_, err := sale.ParseFrom(probe.YAML(name), sale.Sources{Items: func(items string) ([]byte, error) { return a.c.readItems(i.file, items) }})
	if err != nil && !s.StartsAt.IsZero() && !s.EndsAt.IsZero() {
		return err
	}
	i.csv = name
	return nil
}

// besides is the name of a file as another one is to give it: relative to that, where it is in the same directory or below.
func besides(file, name string) string {
	if file == "-" {
		return name
	}
	relative, err := filepath.Rel(filepath.Dir(file), name)
	if err != nil || filepath.IsAbs(name) && strings.HasPrefix(relative, "..") {
		return name
	}
	return filepath.ToSlash(relative)
}
