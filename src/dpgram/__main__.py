"""python -m dpgram"""

from dpgram.cli import main

main()
