package redistest

// For tests of the protocol, which has no exported face.
var (
	Encode      = encode
	ReadFrame   = readFrame
	CommandName = commandName
)
