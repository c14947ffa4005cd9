"""Questions whose answer one option has: with the arguments that are right, a result, and what an answer must hold.

Those under TUNED were looked at while the chat template was written; those under UNSEEN were written afterwards, and
the template was left as it was.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Tool = dict[str, Any]
TEXT = {"type": "string"}
WHOLE = {"type": "integer"}


def tool(name: str, description: str, properties: Mapping[str, Any]) -> Tool:
    """An option as Chat Completions takes it."""
    parameters = {"type": "object", "properties": dict(properties), "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


WEATHER = tool("weather", "Current weather in a city.", {"city": TEXT})
PLACE = {"type": "string", "description": "City name"}
GET_WEATHER = tool("get_weather", "Get current weather for a location", {"location": PLACE})
ADD = tool("add", "Add two numbers.", {"a": WHOLE, "b": WHOLE})
MULTIPLY = tool("multiply", "Multiply two numbers.", {"a": WHOLE, "b": WHOLE})
LOOKUP = tool("lookup", "Look up a person in the address book.", {"name": TEXT})
CONVERT = tool(
    "convert",
    "Convert an amount of money from one currency to another.",
    {"amount": {"type": "number"}, "source": TEXT, "target": TEXT},
)
SEARCH = tool("search", "Search the web.", {"query": TEXT})
REMIND = tool("remind", "Set a reminder.", {"text": TEXT, "minutes": WHOLE})
LIGHT = tool("light", "Switch a light on or off.", {"room": TEXT, "on": {"type": "boolean"}})
DEFINE = tool("define", "Definition of a word.", {"word": TEXT})
STOCK = tool("stock", "Price of a share.", {"symbol": {"type": "string", "enum": ["AAPL", "MSFT", "GOOG"]}})
TRANSLATE = tool("translate", "Translate text to another language.", {"text": TEXT, "language": TEXT})
TIME_IN = tool("time_in", "Current time in a city.", {"city": TEXT})
SEND_MAIL = tool("send_mail", "Send an e-mail.", {"to": TEXT, "subject": TEXT})
PLAY = tool("play", "Play a song.", {"title": TEXT})
FLIGHTS = tool("flights", "Find flights between two cities.", {"origin": TEXT, "destination": TEXT})
POPULATION = tool("population", "Population of a country.", {"country": TEXT})
FIND_BOOK = tool("find_book", "Find a book in the library.", {"title": TEXT})
THERMOSTAT = tool("set_temperature", "Set the thermostat.", {"degrees": WHOLE})
CAPITAL = tool("capital", "Capital of a country.", {"country": TEXT})
ORDER = tool("order", "Order a dish.", {"dish": TEXT, "quantity": WHOLE})
NOW = tool("now", "The date and time now.", {})


@dataclass(frozen=True)
class Question:
    """`arguments`: a text must occur in the model's, whatever its case; any other value must equal it.

    `result` is what the option returns; an answer uses it if it holds one of `says`.
    """

    tool: Tool
    text: str
    arguments: Mapping[str, str | int | bool]
    result: str
    says: tuple[str, ...]

    def is_answered_by(self, text: str) -> bool:
        return any(word.lower() in text.lower() for word in self.says)

    def is_asked_with(self, arguments: Mapping[str, Any]) -> bool:
        return all(
            expected.lower() in str(arguments.get(name)).lower()
            if isinstance(expected, str)
            else arguments.get(name) == expected
            for name, expected in self.arguments.items()
        )


TUNED = (
    Question(WEATHER, "Umbrella today?", {"city": ""}, "18 °C, rain", ("18", "rain")),
    Question(WEATHER, "What is the weather in Paris?", {"city": "paris"}, "18 °C, rain", ("18", "rain")),
    Question(WEATHER, "How warm is it in Berlin today?", {"city": "berlin"}, "21 °C, sunny", ("21", "sun")),
    Question(WEATHER, "Do I need an umbrella in London?", {"city": "london"}, "12 °C, rain", ("12", "rain")),
    Question(WEATHER, "Is it snowing in Oslo?", {"city": "oslo"}, "-3 °C, snow", ("-3", "snow")),
    Question(WEATHER, "Tell me the temperature in Buenos Aires.", {"city": "buenos"}, "30 °C, clear", ("30", "clear")),
    Question(WEATHER, "weather tokyo", {"city": "tokyo"}, "25 °C, cloudy", ("25", "cloud")),
    Question(WEATHER, "Wie ist das Wetter in Hamburg?", {"city": "hamburg"}, "9 °C, wind", ("9", "wind")),
    Question(ADD, "What is 2 plus 3?", {"a": 2, "b": 3}, "5", ("5",)),
    Question(ADD, "Add 17 and 25.", {"a": 17, "b": 25}, "42", ("42",)),
    Question(ADD, "I have 12 apples and buy 30 more. How many apples do I have?", {"a": 12, "b": 30}, "42", ("42",)),
    Question(ADD, "Sum of 1000 and 234?", {"a": 1000, "b": 234}, "1234", ("1234",)),
    Question(LOOKUP, "What is Ada Lovelace's phone number?", {"name": "ada"}, "Ada Lovelace, 79460018", ("7946",)),
    Question(LOOKUP, "Who is Grace Hopper?", {"name": "grace"}, "Grace Hopper, rear admiral", ("admiral",)),
    Question(LOOKUP, "Find the address of John Smith.", {"name": "john"}, "John Smith, 12 High Street", ("12 High",)),
    Question(CONVERT, "How much is 100 dollars in euros?", {"amount": 100}, "92.50 EUR", ("92.5",)),
    Question(CONVERT, "Convert 20 GBP to JPY.", {"amount": 20}, "3900 JPY", ("3900",)),
    Question(SEARCH, "Who won the football world cup in 2022?", {"query": "cup"}, "Argentina won it", ("Argentina",)),
    Question(SEARCH, "Find recipes for apple pie.", {"query": "pie"}, "Grandma's pie: 6 apples, 1 crust", ("apple",)),
    Question(REMIND, "Remind me to call mum in 20 minutes.",
             {"text": "mum", "minutes": 20}, "Set for 14:20", ("14:20",)),
    Question(LIGHT, "Turn on the light in the kitchen.", {"room": "kitchen", "on": True}, "The light is on", ("on",)),
    Question(LIGHT, "Switch off the bedroom lamp.", {"room": "bedroom", "on": False}, "The light is off", ("off",)),
    Question(DEFINE, "What does the word ephemeral mean?",
             {"word": "ephemeral"}, "lasting a short time", ("short time",)),
    Question(STOCK, "What is the price of Microsoft shares?", {"symbol": "MSFT"}, "412.30 USD", ("412",)),
    Question(GET_WEATHER, "What's the weather like in Rome?", {"location": "rome"}, '{"temperature": 24}', ("24",)),
    Question(GET_WEATHER, "Is it raining in Seattle right now?", {"location": "seattle"}, '{"sky": "rain"}', ("rain",)),
    Question(WEATHER, "Should I wear a coat in Moscow?", {"city": "moscow"}, "-8 °C, snow", ("-8", "snow")),
    Question(WEATHER, "What is it like outside in Madrid?", {"city": "madrid"}, "35 °C, sunny", ("35", "sun")),
    Question(WEATHER, "Can I have a picnic in Lisbon today?", {"city": "lisbon"}, "22 °C, sunny", ("22", "sun")),
    Question(ADD, "7 + 8 = ?", {"a": 7, "b": 8}, "15", ("15",)),
    Question(ADD, "Please add 150 and 50", {"a": 150, "b": 50}, "200", ("200",)),
    Question(MULTIPLY, "What is 6 times 7?", {"a": 6, "b": 7}, "42", ("42",)),
    Question(MULTIPLY, "Multiply 12 by 11.", {"a": 12, "b": 11}, "132", ("132",)),
    Question(TRANSLATE, "Translate 'good morning' to French.",
             {"text": "good morning", "language": "fr"}, "bonjour", ("bonjour",)),
    Question(TIME_IN, "What time is it in Sydney?", {"city": "sydney"}, "23:15", ("23:15",)),
    Question(SEND_MAIL, "Send a mail to bob@example.com about the meeting.",
             {"to": "bob@example.com"}, "sent", ("sent",)),
    Question(PLAY, "Play Bohemian Rhapsody.", {"title": "bohemian"}, "Now playing, by Queen", ("queen",)),
    Question(FLIGHTS, "Flights from Vienna to Dublin, please.",
             {"origin": "vienna", "destination": "dublin"}, "OS 123 at 09:40, 129 EUR", ("09:40", "129", "OS 123")),
    Question(POPULATION, "How many people live in Norway?", {"country": "norway"}, "5.6 million", ("5.6",)),
    Question(FIND_BOOK, "Do you have The Hobbit?", {"title": "hobbit"}, "The Hobbit: 2 copies", ("2 cop",)),
    Question(THERMOSTAT, "Set the thermostat to 21 degrees.", {"degrees": 21}, "set to 21 degrees", ("21",)),
    Question(CAPITAL, "What is the capital of Australia?", {"country": "australia"}, "Canberra", ("canberra",)),
    Question(CAPITAL, "Which city is the capital of Peru?", {"country": "peru"}, "Lima", ("lima",)),
    Question(ORDER, "I would like 3 pizzas.", {"dish": "pizza", "quantity": 3}, "ready in 25 minutes", ("25",)),
    Question(NOW, "What day is it today?", {}, "Saturday, 21 November 2026", ("saturday", "21 november")),
    Question(LOOKUP, "Look up Marie Curie.",
             {"name": "marie"}, "Marie Curie, physicist, Paris", ("physicist", "paris")),
    Question(LOOKUP, "What is Bob's email?", {"name": "bob"}, "bob@example.com", ("bob@example.com",)),
    Question(LOOKUP, "Where does Emma Watson live?", {"name": "emma"}, "Emma Watson, 5 Park Lane", ("park lane",)),
)  # fmt: skip

DISTANCE = tool("distance", "Distance between two places in kilometres.", {"start": TEXT, "end": TEXT})
RECIPE = tool("recipe", "Recipe of a dish.", {"dish": TEXT})
ALARM = tool("alarm", "Set an alarm.", {"hour": WHOLE, "minute": WHOLE})
SQUARE = tool("square", "Square of a number.", {"number": WHOLE})
SUBTRACT = tool("subtract", "Subtract b from a.", {"a": WHOLE, "b": WHOLE})
OPENING_HOURS = tool("opening_hours", "Opening hours of a shop or museum.", {"place": TEXT})
BALANCE = tool("balance", "Balance of a bank account.", {"account": TEXT})
TEMPERATURE = tool("temperature", "Temperature of a room at home.", {"room": TEXT})

UNSEEN = (
    Question(WEATHER, "Will it rain in Vienna?", {"city": "vienna"}, "14 °C, rain", ("14", "rain")),
    Question(WEATHER, "Please check the weather in Cairo.", {"city": "cairo"}, "38 °C, sunny", ("38", "sun")),
    Question(WEATHER, "I am flying to Boston. Do I need a jacket?", {"city": "boston"}, "4 °C, wind", ("4", "wind")),
    Question(GET_WEATHER, "Tell me the weather for Dublin.", {"location": "dublin"}, "11 °C, fog", ("11", "fog")),
    Question(ADD, "What do 40 and 2 make?", {"a": 40, "b": 2}, "42", ("42",)),
    Question(SUBTRACT, "What is 50 minus 8?", {"a": 50, "b": 8}, "42", ("42",)),
    Question(SQUARE, "What is the square of 9?", {"number": 9}, "81", ("81",)),
    Question(LOOKUP, "When was Alan Turing born?", {"name": "turing"}, "Alan Turing, born 1912", ("1912",)),
    Question(LOOKUP, "I need the number of Maria Garcia.", {"name": "maria"}, "Maria Garcia, 555 0199", ("0199",)),
    Question(DISTANCE, "How far is it from Rome to Milan?", {"start": "rome", "end": "milan"}, "573 km", ("573",)),
    Question(RECIPE, "How do I make pancakes?", {"dish": "pancake"}, "flour, eggs, milk; fry", ("flour", "eggs")),
    Question(ALARM, "Wake me at 7:30.", {"hour": 7, "minute": 30}, "alarm set for 07:30", ("7:30",)),
    Question(OPENING_HOURS, "When does the Louvre open?", {"place": "louvre"}, "9:00 to 18:00", ("9:00", "18:00")),
    Question(BALANCE, "How much money is in my savings account?", {"account": "savings"}, "1,250 EUR", ("1,250",)),
    Question(TEMPERATURE, "How warm is the living room?", {"room": "living"}, "20.5 °C", ("20.5",)),
    Question(CAPITAL, "Name the capital of Japan.", {"country": "japan"}, "Tokyo", ("tokyo",)),
)
