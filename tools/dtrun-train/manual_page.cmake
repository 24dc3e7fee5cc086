# Writes PAGE, the manual page of PROGRAM, from what --help prints.
execute_process(COMMAND ${PROGRAM} --help OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\\" "\\e" help "${help}")
string(REPLACE "-" "\\-" help "${help}")
file(WRITE ${PAGE} ".TH DTRUN\\-TRAIN 1 \"\" \"dtrun ${VERSION}\" \"User Commands\"
.SH NAME
dtrun\\-train \\- data\\-parallel training with dtrun and libtorch, an example
.SH DESCRIPTION
.nf
${help}.fi
.SH SEE ALSO
.BR dtrun (1)
")
