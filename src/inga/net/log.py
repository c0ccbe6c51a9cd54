"""Where live members write what people should know."""

import logging

from inga.model.text import printable


class Printable(logging.Filter):
    """Lets everything pass, as one line that commands no terminal: names and texts come from the network too."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = printable(record.getMessage()), ()
        return True


log = logging.getLogger("inga")
log.addFilter(Printable())
