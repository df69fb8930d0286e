package adminapi

import "time"

// BackupTimeout bounds how long the server of `store` may take to write a backup.
const BackupTimeout = 10 * time.Minute

// StageHeader says in each response of status 102 what a request waits for.
const StageHeader = "Stockgate-Stage"

// BackupHeader has a StoreBackup. POST store/backup answers with the backup itself.
const BackupHeader = "Stockgate-Backup"

// namedSales is how many sales a header names.
const namedSales = 20

// StoreBackup is what a backup has.
type StoreBackup struct {
	// At is its moment, to the second: what was acknowledged before is in it.
	At    time.Time `json:"at"`
	Bytes int64     `json:"bytes"`
	// Sales is the number of its sales, and Named the first of them.
	Sales int      `json:"sales"`
	Named []string `json:"named"`
	// Server is what can read it, or a newer one: such as redis 7.0.15.
	Server string `json:"server"`
}

// Name sets the sales of a backup.
func (b *StoreBackup) Name(sales []string) {
	b.Sales, b.Named = len(sales), sales[:min(len(sales), namedSales)]
}
