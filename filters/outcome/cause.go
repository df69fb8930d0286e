package outcome

import (
	"net/http"
	"strconv"
)

// StatusCause is how a status of the shop is written as the cause of an outcome: status_201.
func StatusCause(status int) string {
	switch status { // what nearly every order gets
	case http.StatusOK:
		return "status_200"
	case http.StatusCreated:
		return "status_201"
	}
	return "status_" + strconv.Itoa(status)
}
