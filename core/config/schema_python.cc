// Core's own options of the table [python].
#include "core/config/schema_rows.h"

namespace dtrun::config::rows {

void AddPython(Schema& schema) {
  schema.push_back(
      Long(Option("python.modules", Type::kList, kRoot, "Python modules that every host must have"),
           "For example [\"torch\", \"numpy\"]. Before ranks start, the interpreter of job.command looks for "
           "each of them on every host, without importing it. If one is missing, the job does not start, and "
           "dtrun names host, module and interpreter."));
  schema.push_back(Choices(
      Default(
          Long(Option("python.horovod", Type::kEnum, kPlan, "what `import horovod` finds in Python programs"),
               "\"script\": Horovod, where it is installed. \"shim\": its API for torch, TensorFlow and "
               "Keras over this communicator, so not with backend.name = \"none\"; the folder of the dtrun "
               "package is "
               "then first on PYTHONPATH."),
          "script"),
      {"script", "shim"}));
}

}  // namespace dtrun::config::rows
