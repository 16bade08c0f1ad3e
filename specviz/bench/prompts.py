"""Prompts that come with the program, in six classes with very different acceptance."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from specviz.errors import ConfigError
from specviz.words import _

PromptClass = Literal["chat", "code", "edit", "copy", "json", "maths"]
CLASSES: tuple[PromptClass, ...] = get_args(PromptClass)


@dataclass(frozen=True, slots=True)
class BuiltInPrompt:
    """One prompt; `title` is a key of the catalogue of words, `text` goes to the model as it is."""

    id: str
    prompt_class: PromptClass
    title: str
    text: str


_FUNCTION = """\
def average_price(items):
    s = 0
    n = 0
    for item in items:
        if item.price is None:
            continue
        s = s + item.price * item.count
        n = n + item.count
    if n == 0:
        return 0
    return s / n"""

_CLASS = """\
class Queue:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        return self.items.pop(0)

    def size(self):
        return len(self.items)"""

_LOOP = """\
function total(cart) {
  let sum = 0;
  for (let i = 0; i < cart.length; i++) {
    const line = cart[i];
    if (line.price < 0) {
      console.log("skipped " + line.name);
      continue;
    }
    sum += line.price * line.count;
  }
  return sum;
}"""

_LIST = """\
1. Blue ceramic bowl, 18 cm, shelf A4
2. Oak cutting board, 40 cm, shelf B2
3. Steel whisk with wooden handle, shelf B7
4. Glass jar with cork lid, 500 ml, shelf C1
5. Linen towel, white, pack of three, shelf C3
6. Cast iron pan, 26 cm, shelf D5
7. Rubber spatula, red, shelf D6
8. Salt mill, beech wood, 12 cm, shelf E2"""

_LETTER = """\
The lighthouse keeper wrote a letter every evening. She told her sister about the ships that \
passed, the colour of the water, and the birds that slept on the rail. On clear nights she could \
see the lamps of the village across the bay. In winter the boat came only once a month, so the \
letters went out in bundles tied with green string."""

_CONTACT = """\
Maria Lindqvist moved to Porto in 2019. She is 34 years old, works as a marine biologist, and \
has two cats named Pixel and Salt. Her email is maria@example.org."""

_ORDER = """\
Order 4471: two bags of coffee at 9.50 each, one teapot at 24.00, shipped to Tom Baker, \
12 Mill Lane, York, on 3 March."""

_WEATHER = """\
city,day,high,low
Oslo,Monday,14,6
Oslo,Tuesday,12,5
Lima,Monday,22,17
Lima,Tuesday,23,18"""

BUILT_IN: tuple[BuiltInPrompt, ...] = (
    BuiltInPrompt(
        "chat-sky", "chat", "Why is the sky blue?", "Why does the sky look blue during the day?"
    ),
    BuiltInPrompt(
        "chat-bread",
        "chat",
        "Bread for beginners",
        "I want to bake bread for the first time. What do I need and how do I start?",
    ),
    BuiltInPrompt(
        "chat-story",
        "chat",
        "A short story",
        "Tell me a short story about a fox that finds a clock in the forest.",
    ),
    BuiltInPrompt(
        "code-palindrome",
        "code",
        "Palindrome test",
        "Write a Python function that tells whether a string is a palindrome, with a docstring.",
    ),
    BuiltInPrompt(
        "code-stack",
        "code",
        "A stack class",
        "Write a Python class Stack with the methods push, pop, peek and is_empty.",
    ),
    BuiltInPrompt(
        "code-html",
        "code",
        "An HTML page",
        "Write a small HTML page with a title, a heading and a table of five fruits and prices.",
    ),
    BuiltInPrompt(
        "edit-rename",
        "edit",
        "Rename a variable",
        f"Copy this code and rename the variable sum to total.\n\n```javascript\n{_LOOP}\n```",
    ),
    BuiltInPrompt(
        "edit-method",
        "edit",
        "Add a method",
        "Repeat this class and add a method clear that removes all items.\n\n"
        f"```python\n{_CLASS}\n```",
    ),
    BuiltInPrompt(
        "edit-string",
        "edit",
        "Change one line",
        'Repeat this function, but write "ignored " instead of "skipped ".\n\n'
        f"```javascript\n{_LOOP}\n```",
    ),
    BuiltInPrompt(
        "edit-python",
        "edit",
        "Rename a variable in Python",
        f"Copy this code and rename the variable s to total.\n\n```python\n{_FUNCTION}\n```",
    ),
    BuiltInPrompt(
        "copy-letter",
        "copy",
        "A text, word for word",
        f"Repeat the following text exactly, word for word:\n\n{_LETTER}",
    ),
    BuiltInPrompt(
        "copy-list",
        "copy",
        "A list, word for word",
        f"Repeat this list exactly, word for word:\n\n{_LIST}",
    ),
    BuiltInPrompt(
        "copy-paragraph",
        "copy",
        "The same paragraph three times",
        "Write the same paragraph three times",
    ),
    BuiltInPrompt(
        "copy-hello",
        "copy",
        "Repeat one word",
        "Repeat the word 'hello' many times: hello hello hello hello",
    ),
    BuiltInPrompt(
        "json-person",
        "json",
        "Facts about a person",
        "Extract the name, age, job, city and email from this text as JSON.\n\n" + _CONTACT,
    ),
    BuiltInPrompt(
        "json-order",
        "json",
        "An order",
        "Turn this order into JSON with the keys order, items, customer, address and date.\n\n"
        + _ORDER,
    ),
    BuiltInPrompt(
        "json-table",
        "json",
        "A table to JSON",
        "Convert this CSV into a JSON list with one object for each row.\n\n" + _WEATHER,
    ),
    BuiltInPrompt(
        "maths-apples",
        "maths",
        "Apples",
        "Ana has 3 boxes with 12 apples each. She gives away 9 apples and then buys 2 more boxes. "
        "How many apples does she have? Explain step by step.",
    ),
    BuiltInPrompt(
        "maths-table",
        "maths",
        "A times table",
        "Write the multiplication table of 7 from 7 x 1 to 7 x 12, one line each.",
    ),
    BuiltInPrompt(
        "maths-equation",
        "maths",
        "Solve an equation",
        "Solve 3x + 7 = 25 for x. Show every step and check the answer.",
    ),
)


def find(prompt_id: str) -> BuiltInPrompt:
    """Return the built-in prompt of that id.

    Raises:
        ConfigError: There is none; the message lists the ids.
    """
    for prompt in BUILT_IN:
        if prompt.id == prompt_id:
            return prompt
    ids = ", ".join(prompt.id for prompt in BUILT_IN)
    raise ConfigError(
        _("there is no built-in prompt {prompt_id!r}; the ids are: {ids}").format(
            prompt_id=prompt_id, ids=ids
        )
    )


def of_class(classes: Iterable[str]) -> tuple[BuiltInPrompt, ...]:
    """Return the built-in prompts of these classes, in order.

    Raises:
        ConfigError: A class is unknown, or none is named.
    """
    wanted = tuple(classes)
    if not wanted:
        raise ConfigError(
            _("no prompt class is named; the classes are: {classes}").format(
                classes=", ".join(CLASSES)
            )
        )
    for name in wanted:
        if name not in CLASSES:
            allowed = ", ".join(CLASSES)
            raise ConfigError(
                _("there is no prompt class {name!r}; the classes are: {allowed}").format(
                    name=name, allowed=allowed
                )
            )
    return tuple(prompt for prompt in BUILT_IN if prompt.prompt_class in wanted)
