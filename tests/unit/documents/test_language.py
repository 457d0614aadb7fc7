"""The language of a text that says nothing of it: one text of our own in each of sixty languages, and parts of them."""

import pytest

from gossamer.documents.language import MIN_AGAINST, MIN_LETTERS, detect

TEXTS = {
    "af": "Die bakker maak sy winkel oop voordat die son opkom, omdat die eerste mense brood kom haal op pad na hulle werk. "
    "In die winter is dit",
    "ar": "يفتح الخباز دكانه قبل شروق الشمس، لأن أول الناس يأتون لشراء الخبز في طريقهم إلى العمل. في الشتاء يكون",
    "az": "Çörəkçi dükanını günəş doğmamış açır, çünki ilk müştərilər işə gedərkən çörək almağa gəlirlər. Qışda hava "
    "qaranlıq və",
    "be": "Пекар адчыняе сваю краму яшчэ да ўсходу сонца, бо першыя людзі прыходзяць па хлеб дарогай на працу. Узімку цёмна "
    "і холадна,",
    "bg": "Хлебарят отваря магазина си, преди да изгрее слънцето, защото първите хора идват за хляб на път за работа. През "
    "зимата е",
    "bn": "রুটিওয়ালা সূর্য ওঠার আগেই তার দোকান খোলে, কারণ প্রথম লোকেরা কাজে যাওয়ার পথে রুটি নিতে আসে। শীতকালে অন্ধকার আর ঠান্ডা",
    "br": "Ar baraer a zigor e stal a-raok ma savfe an heol, rak an dud kentañ a zeu da glask bara war hent o labour. Er "
    "goañv e vez teñval",
    "ca": "El forner obre la botiga abans que surti el sol, perquè els primers clients vénen a buscar pa de camí a la "
    "feina. A l'hivern és",
    "cs": "Pekař otevírá svůj obchod dříve, než vyjde slunce, protože první lidé si chodí pro chléb cestou do práce. V zimě "
    "je",
    "cy": "Mae'r pobydd yn agor ei siop cyn i'r haul godi, oherwydd bod y bobl gyntaf yn dod i nôl bara ar eu ffordd i'r "
    "gwaith. Yn y gaeaf mae hi'n",
    "da": "Bageren åbner sin butik, før solen står op, fordi de første kunder kommer efter brød på vej til arbejde. Om "
    "vinteren er det mørkt og",
    "de": "Der Bäcker öffnet seinen Laden, bevor die Sonne aufgeht, weil die ersten Leute auf dem Weg zur Arbeit Brot "
    "holen. Im Winter ist es dunkel und",
    "el": "Ο φούρναρης ανοίγει το μαγαζί του πριν ανατείλει ο ήλιος, γιατί",
    "en": "The baker opens his shop before the sun rises, because the first people come for bread on their way to work. In "
    "winter it is dark and",
    "eo": "La bakisto malfermas sian butikon antaŭ ol la suno leviĝas, ĉar la unuaj homoj venas por pano survoje al la "
    "laboro. En la vintro estas",
    "es": "El panadero abre su tienda antes de que salga el sol, porque los primeros clientes vienen a buscar pan de camino "
    "al trabajo. En invierno",
    "et": "Pagar avab oma poe enne päikesetõusu, sest esimesed inimesed tulevad leiba ostma teel tööle. Talvel on pime ja "
    "külm,",
    "eu": "Okinak eguzkia atera baino lehen irekitzen du denda, lehen bezeroak lanerako bidean ogi bila etortzen direlako. "
    "Neguan ilun eta hotz",
    "fa": "نانوا پیش از طلوع آفتاب مغازه‌اش را باز می‌کند، چون نخستین مشتریان در راه رفتن به سر کار برای خرید نان می‌آیند. "
    "در زمستان هوا",
    "fi": "Leipuri avaa kauppansa ennen auringonnousua, koska ensimmäiset asiakkaat tulevat hakemaan leipää matkalla "
    "töihin. Talvella on pimeää",
    "fo": "Bakarin letur handil sín upp, áðrenn sólin kemur upp, tí fyrstu fólkini koma eftir breyði á veg til arbeiðis. Um "
    "veturin er myrkt og",
    "fr": "Le boulanger ouvre sa boutique avant le lever du soleil, parce que les premiers clients viennent chercher du "
    "pain sur le chemin du travail. En",
    "fy": "De bakker docht syn winkel iepen foardat de sinne opkomt, om't de earste minsken op wei nei harren wurk bôle "
    "komme heljen. Yn de winter is",
    "ga": "Osclaíonn an báicéir a shiopa sula n-éiríonn an ghrian, mar go dtagann na chéad daoine le haghaidh aráin ar a "
    "mbealach chun na hoibre. Sa gheimhreadh",
    "gl": "O panadeiro abre a súa tenda antes de que saia o sol, porque os primeiros clientes veñen buscar pan de camiño ao "
    "traballo. No inverno fai",
    "he": "האופה פותח את חנותו לפני שהשמש זורחת, כי האנשים הראשונים באים לקנות לחם בדרך לעבודה. בחורף חשוך וקר,",
    "hi": "बेकर सूरज निकलने से पहले अपनी दुकान खोलता है, क्योंकि पहले लोग काम पर जाते समय रोटी लेने आते हैं। सर्दियों में "
    "अंधेरा और ठंड होती है,",
    "hr": "Pekar otvara svoju trgovinu prije nego što izađe sunce, jer prvi ljudi dolaze po kruh na putu do posla. Zimi je "
    "mračno i",
    "hu": "A pék még napkelte előtt kinyitja a boltját, mert az első vevők munkába menet jönnek a kenyérért. Télen sötét "
    "van és hideg,",
    "hy": "Հացթուխը խանութը բացում է արևածագից առաջ, քանի որ",
    "id": "Tukang roti membuka tokonya sebelum matahari terbit, karena orang-orang pertama datang membeli roti dalam "
    "perjalanan ke tempat kerja. Pada musim hujan hari",
    "is": "Bakarinn opnar búðina sína áður en sólin kemur upp, því að fyrsta fólkið kemur til að sækja brauð á leið til "
    "vinnu. Á veturna er dimmt og",
    "it": "Il fornaio apre la bottega prima che sorga il sole, perché i primi clienti vengono a prendere il pane andando al "
    "lavoro. D'inverno fa",
    "ka": "მცხობელი თავის მაღაზიას მზის ამოსვლამდე ხსნის, რადგან",
    "kk": "Наубайшы дүкенін күн шықпай тұрып ашады, өйткені алғашқы адамдар жұмысқа бара жатқан жолда нан алуға келеді. "
    "Қыста қараңғы",
    "la": "Pistor tabernam suam aperit antequam sol oriatur, quia primi homines panem petunt cum ad opus eunt. Hieme "
    "tenebrae sunt",
    "lb": "De Bäcker mécht säi Buttek op, ier d'Sonn opgeet, well déi éischt Leit op de Wee fir op d'Aarbecht Brout siche "
    "kommen. Am Wanter ass et däischter",
    "lt": "Kepėjas atidaro savo parduotuvę prieš saulėtekį, nes pirmieji žmonės ateina duonos eidami į darbą. Žiemą tamsu "
    "ir",
    "lv": "Maiznieks atver savu veikalu pirms saullēkta, jo pirmie cilvēki nāk pēc maizes ceļā uz darbu. Ziemā ir tumšs",
    "mk": "Пекарот ја отвора својата продавница пред да изгрее сонцето, бидејќи првите луѓе доаѓаат за леб на пат кон "
    "работа. Во зима е темно и",
    "mn": "Талхчин нар мандахаас өмнө дэлгүүрээ нээдэг, учир нь анхны хүмүүс ажилдаа явах замдаа талх авахаар ирдэг. Өвөл",
    "mr": "बेकरीवाला सूर्य उगवण्यापूर्वी आपले दुकान उघडतो, कारण पहिले लोक कामावर जाताना पाव घ्यायला येतात. हिवाळ्यात अंधार आणि थंडी",
    "mt": "Il-furnar jiftaħ il-ħanut tiegħu qabel ma titla' x-xemx, għax l-ewwel nies jiġu għall-ħobż fi triqthom lejn ix- "
    "xogħol. Fix-xitwa",
    "ne": "रोटी पसले घाम झुल्किनुअघि आफ्नो पसल खोल्छ, किनभने पहिला मानिसहरू काममा जाँदा रोटी लिन आउँछन्। जाडोमा अँध्यारो र चिसो",
    "nl": "De bakker opent zijn winkel voordat de zon opkomt, omdat de eerste mensen op weg naar hun werk brood komen "
    "halen. In de winter is het donker",
    "no": "Bakeren åpner butikken sin før solen står opp, fordi de første kundene kommer for å hente brød på vei til "
    "jobben. Om vinteren er det",
    "pa": "ਨਾਨਬਾਈ ਸੂਰਜ ਚੜ੍ਹਨ ਤੋਂ ਪਹਿਲਾਂ ਆਪਣੀ ਦੁਕਾਨ ਖੋਲ੍ਹਦਾ ਹੈ, ਕਿਉਂਕਿ ਪਹਿਲੇ ਲੋਕ ਕੰਮ ਤੇ ਜਾਂਦੇ ਹੋਏ ਰੋਟੀ",
    "pl": "Piekarz otwiera sklep, zanim wzejdzie słońce, ponieważ pierwsi klienci przychodzą po chleb w drodze do pracy. "
    "Zimą jest ciemno",
    "ps": "نانوای د لمر له ختلو مخکې خپل دوکان پرانیزي، ځکه چې لومړني خلک د کار په لاره کې د ډوډۍ اخیستلو لپاره راځي. په "
    "ژمي",
    "pt": "O padeiro abre a loja antes de o sol nascer, porque os primeiros clientes vêm buscar pão a caminho do trabalho. "
    "No inverno está",
    "ro": "Brutarul își deschide magazinul înainte de răsăritul soarelui, pentru că primii oameni vin după pâine în drum "
    "spre serviciu. Iarna este",
    "ru": "Пекарь открывает свою лавку до восхода солнца, потому что первые люди приходят за хлебом по дороге на работу. "
    "Зимой темно и",
    "sk": "Pekár otvára svoj obchod skôr, ako vyjde slnko, pretože prví ľudia si chodia po chlieb cestou do práce. V zime "
    "je",
    "sl": "Pek odpre svojo trgovino, preden vzide sonce, ker prvi ljudje pridejo po kruh na poti v službo. Pozimi je temno "
    "in",
    "so": "Rooti dubuhu wuxuu dukaankiisa furaa ka hor inta aanay qorraxdu soo bixin, sababtoo ah dadka ugu horreeya ayaa "
    "rooti u yimaada iyagoo shaqada ku",
    "sq": "Bukëpjekësi e hap dyqanin e tij para se të lindë dielli, sepse njerëzit e parë vijnë për bukë rrugës për në "
    "punë. Në dimër është errësirë",
    "sr": "Пекар отвара своју радњу пре него што изађе сунце, јер први људи долазе по хлеб на путу до посла. Зими је мрачно "
    "и",
    "sv": "Bagaren öppnar sin butik innan solen går upp, eftersom de första kunderna kommer för att hämta bröd på väg till "
    "arbetet. På vintern är det",
    "sw": "Mwokaji anafungua duka lake kabla jua halijachomoza, kwa sababu watu wa kwanza wanakuja kununua mkate wakiwa "
    "njiani kwenda kazini. Wakati wa baridi",
    "tl": "Binubuksan ng panadero ang kanyang tindahan bago sumikat ang araw, dahil dumarating ang mga unang tao upang "
    "bumili ng tinapay sa daan papunta sa trabaho. Sa",
    "tr": "Fırıncı dükkânını güneş doğmadan açar, çünkü ilk müşteriler işe giderken ekmek almaya gelir. Kışın hava karanlık "
    "ve",
    "uk": "Пекар відчиняє свою крамницю ще до сходу сонця, бо перші люди приходять по хліб дорогою на роботу. Взимку темно "
    "і холодно,",
    "ur": "نانبائی سورج نکلنے سے پہلے اپنی دکان کھول لیتا ہے، کیونکہ پہلے لوگ کام پر جاتے ہوئے روٹی لینے آتے ہیں۔ سردیوں "
    "میں اندھیرا اور ٹھنڈ",
    "uz": "Novvoy doʻkonini quyosh chiqmasdan oldin ochadi, chunki birinchi odamlar ishga ketayotganda non olish uchun "
    "kelishadi. Qishda qorongʻi va",
    "vi": "Người thợ làm bánh mở cửa hàng trước khi mặt trời mọc, vì những người đầu tiên đến mua bánh mì trên đường đi "
    "làm. Vào mùa đông trời tối và",
    "yi": "דער בעקער עפֿנט זײַן קראָם איידער די זון גייט אויף, ווײַל די ערשטע מענטשן קומען נאָך ברויט אויפֿן וועג צו דער "
    "אַרבעט. ווינטער איז פֿינצטער",
}

#: Those whose neighbours are nearest: their halves are told as well.
HARD = [
    "bg",
    "ca",
    "cs",
    "da",
    "es",
    "gl",
    "hi",
    "id",
    "it",
    "lb",
    "mk",
    "mr",
    "ne",
    "no",
    "pt",
    "sk",
    "sr",
    "sv",
    "uk",
]


@pytest.mark.parametrize("language", TEXTS)
def test_an_undeclared_text_is_told_by_itself(language: str) -> None:
    assert detect(TEXTS[language]) == language
    assert detect(TEXTS[language].upper()) == language or language in ("el", "ka")


@pytest.mark.parametrize("language", HARD)
def test_neighbours_are_told_apart_in_a_line(language: str) -> None:
    text = TEXTS[language]
    assert detect(text[: 2 * MIN_AGAINST]) == language


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("uk", "Поїзд до Львова вирушає сьогодні лише о дев’ятій годині, бо колія закрита."),
        ("ru", "Поезд в Казань отправляется сегодня только в девять часов, потому что путь закрыт."),
        ("sr", "Синоћ смо дуго разговарали о новој кући и ништа нисмо одлучили."),
        ("tr", "Ankara treni bugün ancak saat dokuzda kalkıyor çünkü hat kapalı."),
        ("cs", "Včera večer jsme dlouho mluvili o novém domě a nic jsme nerozhodli."),
        ("pt", "A câmara anunciou que a ponte ficará fechada a partir de segunda-feira."),
        ("ga", "Fágfaidh busanna an stáisiún gach fiche nóiméad."),
        ("en", "Mr. Erdoğan and Mrs. Wałęsa met Mr. Škoda and Mrs. Ångström in the new house."),
    ],
)
def test_letters_of_few_languages_tell_them_in_one_sentence(language: str, text: str) -> None:
    assert detect(text) == language


def test_words_tell_a_line_of_which_the_library_says_nothing() -> None:
    assert detect("बसें हर बीस मिनट में स्टेशन से चलेंगी।") == "hi"


def test_a_page_that_claims_a_far_language_is_not_believed() -> None:
    assert all(detect(text, "sw") == language for language, text in TEXTS.items())


def test_a_text_of_a_few_letters_is_told_by_the_page_alone() -> None:
    short = TEXTS["de"][: MIN_LETTERS // 2]
    assert (detect(short), detect(short, "de-AT"), detect(short, "fr")) == ("", "de", "fr")
    longer = "Heute Morgen gingen wir zum Hafen hinunter"
    assert (detect(longer), detect(longer, "de-AT"), detect(longer, "fr")) == ("de", "de", "fr")
