package adminapi

// SaleReport answers GET sales/{id}/report.
type SaleReport struct {
	Sale string `json:"sale"`
	// HTML is a whole page, which needs no other file.
	HTML string `json:"html"`
	// CSV has all items.
	CSV string `json:"csv"`
}
