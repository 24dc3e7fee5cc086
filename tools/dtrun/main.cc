// dtrun: launches copies of a training program.
namespace dtrun::cli {
int Main(int argc, char** argv);  // verbs.cc
}

int main(int argc, char** argv) { return dtrun::cli::Main(argc, argv); }
