"""Jobs in the tasks of a platform: the part that the faces of Ray and Spark share. `driver.py` is the driver's side, `member.py` a task's,
`channel.py` the connection between them."""
