package risk

import "time"

// Account is the account of one sale.
type Account struct{ a *account }

func NewAccount() Account { return Account{newAccount()} }

func (a Account) Sold(seq, units int64)         { a.a.sold(seq, units, time.Second) }
func (a Account) ReadTo(seq, units int64)       { a.a.readTo(seq, units, time.Second) }
func (a Account) Began(epoch string, seq int64) { a.a.began(epoch, seq, time.Second) }

// Lost is lost by a server that was asked after all that was counted.
func (a Account) Lost(seq int64) { a.a.lost(seq, time.Minute) }

// BeganLater is Began that asked after all that was counted.
func (a Account) BeganLater(epoch string, seq int64) { a.a.began(epoch, seq, time.Minute) }

// Gone is what a heartbeat says that asked at the same time as Began.
func (a Account) Gone() { a.a.gone(time.Second) }

func (a Account) Prove(epoch string, seq int64)        { a.a.prove(epoch, seq) }
func (a Account) Units() int64                         { return a.a.units.Load() }
func (a Account) Room(b Bound, at time.Duration) int64 { return a.a.room(b, at) }
func (a Account) Lots() int                            { return len(a.a.lots) }

// MaxLots bounds the lots of an account.
const MaxLots = maxLots

// Replicas learns what INFO says at a given time, and returns how many replicas must have
// what was sold.
func Replicas(infos ...map[string]string) (most []int, err error) {
	n, at := new(node), time.Duration(0)
	for _, info := range infos {
		after, err := time.ParseDuration(info["after"])
		if err != nil {
			return nil, err
		}
		at += after
		if err := n.learn(info, at, goneFor); err != nil {
			return most, err
		}
		most = append(most, n.most)
	}
	return most, nil
}
