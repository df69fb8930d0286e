package command

// How a backup that is complete gets its name.
var (
	GiveName = giveName
	TakeName = takeName
)
