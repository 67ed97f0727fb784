/** Sentences of some topics, made of templates: each topic has every combination of its parts. */
const PARTS: [openings: string[], middles: string[], ends: string[]][] = [
  [
    ['My invoice from last month', 'The bill that I got', 'A charge on my card', 'The receipt of my order'],
    [
      'shows the wrong amount',
      'has been paid twice',
      'does not name my company',
      'is not in my account',
      'has the old address',
    ],
    ['please send a new one', 'can I get my money back?', 'who can correct that?', 'I need it for my taxes'],
  ],
  [
    ['My parcel', 'The delivery of my shoes', 'The box that I ordered', 'The driver with my package'],
    [
      'has not arrived yet',
      'went to the wrong street',
      'was left in the rain',
      'is stuck at the customs',
      'came a week too late',
    ],
    [
      'when will it be here?',
      'can you track it?',
      'please bring it to my neighbour',
      'I was at home all day',
    ],
  ],
  [
    ['The app on my phone', 'Your website', 'The login page', 'The new version of the software'],
    [
      'crashes when I open it',
      'shows an empty screen',
      'does not accept my password',
      'is very slow today',
      'says that the server is down',
    ],
    ['how do I fix that?', 'is it a known bug?', 'I have restarted it already', 'which update do I need?'],
  ],
  [
    ['My flight to Rome', 'The hotel that we booked', 'Our trip in summer', 'The train to the airport'],
    [
      'has been cancelled',
      'must be moved to Friday',
      'needs one more bed',
      'leaves too early for us',
      'is overbooked',
    ],
    [
      'can we change the date?',
      'what does it cost?',
      'is breakfast included?',
      'we travel with two children',
    ],
  ],
]

export const TOPICS: string[][] = PARTS.map(([openings, middles, ends]) =>
  openings.flatMap((opening) =>
    middles.flatMap((middle) => ends.map((end) => `${opening} ${middle}, ${end}`)),
  ),
)
