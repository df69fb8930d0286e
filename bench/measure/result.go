package measure

// Report is everything that one run of the benchmark measured, as written to JSON.
type Report struct {
	Machine  Machine  `json:"machine"`
	Settings Settings `json:"settings"`
	Cases    []Case   `json:"cases"`
	Goals    []Judged `json:"goals"`
	// NotRun says why cases or peers were left out.
	NotRun []string `json:"not_run,omitempty"`
}

// Settings are the settings of the measurement.
type Settings struct {
	Seconds     float64 `json:"seconds_per_run"`
	Runs        int     `json:"runs"`
	Connections int     `json:"connections"`
	Attempts    int     `json:"attempts_of_a_whole_sale"`
	ServerCore  int     `json:"server_core"`
	LoadCore    int     `json:"load_core"`
}

// Case is one table.
type Case struct {
	Name  string `json:"name"`
	About string `json:"about"`
	Rows  []Row  `json:"rows"`
	// Sync is how many ms the disk took to sync a record.
	Sync Spread `json:"disk_sync_ms,omitzero"`
}

// Row is one peer in a case. What does not apply is 0.
type Row struct {
	Peer   string  `json:"peer"`
	Rate   Spread  `json:"per_second"` // answers, or reservations
	Ratio  float64 `json:"ratio"`      // its median to that of the first row
	P50    Spread  `json:"p50_ms"`
	P99    Spread  `json:"p99_ms"`
	Micros Spread  `json:"cpu_us_each"` // processor time of the server for each answer
	Busy   Spread  `json:"busy"`        // how much of its core the server used: below 0.95 it was not what held up

	Calls   Spread            `json:"script_calls_each"`     // of Redis
	Whole   Spread            `json:"seconds,omitzero"`      // of a whole sale, by the clock
	CPU     map[string]Spread `json:"cpu_seconds,omitempty"` // of a whole sale, by process
	Scripts Spread            `json:"script_calls,omitzero"` // of a whole sale
	PerCore Spread            `json:"per_redis_core_second,omitzero"`
	Bytes   Spread            `json:"redis_bytes_each,omitzero"` // that Redis receives and sends
	// Connections are open and idle; Memory is what each of them adds to the server's resident
	// memory, Live to its live heap and stacks, in KiB.
	Connections int    `json:"idle_connections,omitempty"`
	Memory      Spread `json:"rss_kib_each,omitzero"`
	Live        Spread `json:"live_kib_each,omitzero"`
	Config      string `json:"config,omitempty"` // of the environment, if not the usual
}

// Find returns the row of a peer.
func (c *Case) Find(peer string) (Row, bool) {
	for _, r := range c.Rows {
		if r.Peer == peer {
			return r, true
		}
	}
	return Row{}, false
}

// Relate fills in every row's ratio to the first one's rate.
func (c *Case) Relate() {
	for i := range c.Rows {
		if first := c.Rows[0].Rate.Median; first != 0 {
			c.Rows[i].Ratio = c.Rows[i].Rate.Median / first
		}
	}
}
