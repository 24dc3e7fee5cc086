/* Something that calls itself MPI and is another one, for a test of who is refused. */
int MPI_Get_library_version(char* version, int* length);

__attribute__((visibility("default"))) int MPI_Get_library_version(char* version, int* length) {
  static const char text[] = "MPICH Version: 4.0.2\nMPICH Release date: none";
  for (*length = 0; text[*length] != 0; ++*length) version[*length] = text[*length];
  version[*length] = 0;
  return 0;
}
