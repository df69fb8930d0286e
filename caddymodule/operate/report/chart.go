package report

import (
	"fmt"
	"strings"
	"time"
)

// The size of a chart's plot, and how many moments it draws.
const (
	chartWidth, chartHeight = 900, 240
	chartMoments            = 300
)

// Band is one layer of a chart: a path of SVG, and the class that colours it.
type Band struct{ Class, Path string }

// Tick is a label of an axis.
type Tick struct {
	At    string
	Label string
}

// Chart is the stock over a time, as layers that are drawn in their order.
type Chart struct {
	Title  string
	Bands  []Band
	X, Y   []Tick
	Rows   [][]string // the table behind it
	Width  int
	Height int
}

// bandNames are the layers from below.
var bandNames = [4]string{"sold", "in_doubt", "held", "available"}

// Charts returns the curve of the sale: the rush, and all of it where that is much longer.
func (r *Report) Charts() []Chart {
	points := r.curve.points
	if len(points) == 0 || r.first.IsZero() {
		return nil
	}
	base := r.base()
	last := points[len(points)-1].at
	rush := r.curve.lastTaken.Sub(r.first) * 5 / 4
	if rush < time.Second {
		rush = time.Second
	}
	var all []Chart
	all = append(all, r.chart("From the first hold", r.first.Add(-rush/50), r.first.Add(rush), base))
	if whole := last.Sub(r.first); whole > 2*rush {
		all = append(all, r.chart("The whole sale", r.first.Add(-whole/50), last, base))
	}
	return all
}

// base is what the sums lack if the first movements are missing.
func (r *Report) base() (base [4]int64) {
	if r.Missing == 0 {
		return base
	}
	return [4]int64{r.Stock.Confirmed - r.sums.Confirmed, r.Stock.InDoubt - r.sums.InDoubt, r.Stock.Held - r.sums.Held, r.Stock.Available - r.sums.Available}
}

func (r *Report) chart(title string, from, to time.Time, base [4]int64) Chart {
	c := Chart{Title: title, Width: chartWidth, Height: chartHeight}
	moments := r.curve.between(from, to, chartMoments, base)
	top := int64(1)
	for _, m := range moments {
		top = max(top, m.units[0]+m.units[1]+m.units[2]+m.units[3])
	}
	height := func(units int64) float64 { return chartHeight * (1 - float64(max(0, units))/float64(top)) }
	// the highest layer first: each covers what is below its line
	for layer := len(bandNames) - 1; layer >= 0; layer-- {
		var path strings.Builder
		fmt.Fprintf(&path, "M0 %d", chartHeight)
		for i, m := range moments {
			sum := int64(0)
			for _, units := range m.units[:layer+1] {
				sum += units
			}
			fmt.Fprintf(&path, "L%.1f %.1f", float64(i)*chartWidth/float64(len(moments)-1), height(sum))
		}
		fmt.Fprintf(&path, "L%d %dZ", chartWidth, chartHeight)
		c.Bands = append(c.Bands, Band{bandNames[layer], path.String()})
	}
	for i := range 6 {
		after := to.Sub(from) * time.Duration(i) / 5
		c.X = append(c.X, Tick{fmt.Sprint(i * chartWidth / 5), from.Add(after).Sub(r.first).Round(roundOf(to.Sub(from))).String()})
	}
	for i := range 3 {
		c.Y = append(c.Y, Tick{fmt.Sprint(chartHeight - i*chartHeight/2), count(top * int64(i) / 2)})
	}
	for i := 0; i < len(moments); i += chartMoments / 15 {
		row := []string{moments[i].at.Sub(r.first).Round(roundOf(to.Sub(from))).String()}
		for _, units := range moments[i].units {
			row = append(row, count(units))
		}
		c.Rows = append(c.Rows, row)
	}
	return c
}

// roundOf returns the precision of times in a chart of this length.
func roundOf(d time.Duration) time.Duration {
	switch {
	case d < time.Minute:
		return 10 * time.Millisecond
	case d < time.Hour:
		return time.Second
	}
	return time.Minute
}
