"""`sabir replay`: ask a model the questions of a recorded conversation again, and show what differs.

recording     the records of a conversation as questions, each with its recorded steps
running       the steps of one question, asked again; options do not run, their recorded results are used
differences   the comparison of two sequences of steps
costs         the estimate, and the question whether to start
report        the differences as text for people, and as JSON
command       the command
"""
