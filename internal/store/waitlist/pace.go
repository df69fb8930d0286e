package waitlist

import "time"

const (
	// slot is the time for which offers are counted together, and slots how many are remembered.
	slot  = 10 * time.Second
	slots = 30
)

// pace counts the offers of the last minutes.
type pace struct {
	first  int64 // number of the first slot that was counted; 0: none was
	counts [slots]int
	of     [slots]int64 // the number of each slot
}

func (p *pace) add(now time.Time) {
	n := now.Unix() / int64(slot/time.Second)
	i := n % slots
	if p.of[i] != n {
		p.of[i], p.counts[i] = n, 0
	}
	p.counts[i]++
	if p.first == 0 {
		p.first = n
	}
}

// until estimates how long it takes until so many people have had an offer; 0: there was none lately.
func (p *pace) until(people int, now time.Time) time.Duration {
	n := now.Unix() / int64(slot/time.Second)
	sum := 0
	for i := range p.counts {
		if p.of[i] > n-slots {
			sum += p.counts[i]
		}
	}
	if sum == 0 {
		return 0
	}
	seen := time.Duration(min(n-p.first+1, slots)) * slot
	return (seen * time.Duration(people) / time.Duration(sum)).Round(time.Second)
}
