package adminapi

import "time"

// MoveTimeout bounds how long the stock may take to be moved.
const MoveTimeout = 30 * time.Minute

// MoveRequest names the destination of a move: either a store or a Redis.
type MoveRequest struct {
	// Store is the absolute path of a directory, as in the option store.
	Store string `json:"store,omitempty"`
	// Redis are addresses, and the other fields belong to them, as in the option redis.
	Redis            []string `json:"redis,omitempty"`
	Sentinel         string   `json:"sentinel,omitempty"`
	SentinelUsername string   `json:"sentinel_username,omitempty"`
	SentinelPassword string   `json:"sentinel_password,omitempty"`
	Cluster          bool     `json:"cluster,omitempty"`
	Username         string   `json:"username,omitempty"`
	Password         string   `json:"password,omitempty"`
	TLS              bool     `json:"tls,omitempty"`
	// CA, Certificate and Key are files on the machine of this Caddy.
	CA          []string `json:"ca,omitempty"`
	Certificate string   `json:"certificate,omitempty"`
	Key         string   `json:"key,omitempty"`
	ServerName  string   `json:"server_name,omitempty"`
}

// StockMoved says where the stock is after a move.
type StockMoved struct {
	Where string   `json:"where"`
	Sales []string `json:"sales"`
	Keys  int      `json:"keys"`
	// Before: an earlier request had moved it.
	Before bool `json:"before,omitempty"`
}
