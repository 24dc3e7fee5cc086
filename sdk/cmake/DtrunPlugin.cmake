# dtrun_add_plugin(): filled by its part
