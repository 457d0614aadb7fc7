"""Which language a text is in, as an ISO 639-1 code (the shortest BCP 47 tag). Decision 13 says how the library was chosen.

Three witnesses, in this order: the script, where only one language is written in it; statistics of letters, letters of few
languages and frequent words together, by the profiles of `resiliparse` and the tables here; and the page's own word, which
decides among languages that look alike and for texts that are too short. The library is imported on the first question.
"""

import re
from collections.abc import Sequence
from functools import cache

from gossamer.values.patterns import lazy_pattern

#: Characters that are looked at; more do not make the answer better.
SAMPLE = 1_500

#: Letters below which a text says nothing. Of beginnings of sentences in 44 languages with 25 to 50 letters, eleven in twelve are
#: told.
MIN_LETTERS = 25
#: Letters below which the page's own word counts where it has one: it is right more often than that.
MIN_AGAINST = 50

#: Candidates among which the page's own word decides.
CANDIDATES = 3

#: Nearest languages that the library is asked for: in texts of 40 letters the right one is among them.
_ASKED_FOR = 30

#: Ranks of letter statistics that a text comes nearer to a language all of whose words are frequent ones of it. In ours it is a
#: third: 160 ranks, where neighbours differ by some 50. Anything from 300 to 1,500 is as good.
_WORDS_COUNT = 500

#: Ranks that a text is farther from a language that has none of its letters: a twentieth of a line in Ukrainian is not written
#: in Russian.
_LETTERS_COUNT = 1_500
#: Characters from which on the statistics are sure without these, and names from elsewhere more than a witness.
_SURE = 500

# Letters of few languages, among those of our words that share a script.
_LETTERS = (
    "їєґ:uk і:uk,be,kk ў:be,uz ыэ:ru,be,kk,ky,tt,ba,cv,mn јљњџ:sr,mk ђћ:sr ѓќѕ:mk қғ:kk,uz,tg,ba ә:kk,tt,ba "
    "өү:kk,ky,tt,ba,mn ığ:tr,az ə:az ş:tr,az,ku,ro ł:pl ąę:pl,lt ėįų:lt ķļņģ:lv ěřů:cs ľĺŕ:sk őű:hu țș:ro đ:hr,sr,vi "
    "ð:is,fo þ:is ß:de å:sv,da,no,fi ø:da,no,fo õ:pt,et,vi ñ:es,gl,eu,br ħġ:mt ơư:vi پچگ:fa,ur,ps,sd,ug,ku ٹڈںے:ur ځڅۍ:ps "
    "čž:cs,sk,sl,hr,sr,lt,lv,et ťďň:cs,sk ýú:cs,sk,is,fo,vi,hu,es,gl,pt,it,ga ĉĝŝŭ:eo ã:pt,vi ä:de,sv,fi,et,sk,lb æ:da,no,is,fo "
    "â:fr,pt,ro,cy,tr,fy,vi ç:fr,ca,pt,tr,az,sq,ku ò:it,ca,gd,vi ळ:mr"
)
_WRITTEN_IN = {
    letter: frozenset(languages.split(","))
    for letters, _, languages in (word.partition(":") for word in _LETTERS.split())
    for letter in letters
}

#: Words that are looked at: 20 us. Of so many, a third is nearly always one of the frequent ones.
_MOST_WORDS = 120

#: Characters, spread over the text, by which its script is told: each script takes a look at all of them.
_SCRIPT_SAMPLE = 200

#: Share of the letters that must be of a script; Japanese mixes kana with the characters of Chinese.
_SHARE, _SHARE_OF_KANA = 0.25, 0.1

# Scripts of one language, or of one that has nearly all pages in it. `re` compiles and keeps them for the first text: 2.6 ms.
_SCRIPTS = (
    "ja:\u3040-\u30ff ko:\u1100-\u11ff\uac00-\ud7af zh:\u3400-\u4dbf\u4e00-\u9fff el:\u0370-\u03ff\u1f00-\u1fff "
    "th:\u0e00-\u0e7f ka:\u10a0-\u10ff hy:\u0530-\u058f ta:\u0b80-\u0bff bn:\u0980-\u09ff pa:\u0a00-\u0a7f "
    "or:\u0b00-\u0b7f dv:\u0780-\u07bf am:\u1200-\u137f bo:\u0f00-\u0fff te:\u0c00-\u0c7f kn:\u0c80-\u0cff "
    "ml:\u0d00-\u0d7f gu:\u0a80-\u0aff si:\u0d80-\u0dff km:\u1780-\u17ff my:\u1000-\u109f lo:\u0e80-\u0eff"
)
_NO_LETTERS = bytes(code for code in range(256) if not chr(code).isalpha() or code > 127)

#: Share of letters that are not ASCII, below which no script of its own is looked for.
_FOREIGN = 0.1
_TAG = lazy_pattern(r"([A-Za-z]{2,3})(?:[-_]|$)")


def detect(text: str, declared: str = "") -> str:
    """The language of a text; empty where nothing tells it. `text`: of any length; `declared`: what the page says of itself
    (`lang`, `Content-Language`), as it stands there."""
    said = primary(declared)
    sample = text[:SAMPLE]
    plain = sample.encode("ascii", "ignore")  # characters of other kinds are letters nearly all
    ascii_letters, others = len(plain.translate(None, _NO_LETTERS)), len(sample) - len(plain)
    letters = ascii_letters + others
    step = len(sample) // _SCRIPT_SAMPLE + 1
    if others > _FOREIGN * letters:
        for language, _, characters in (script.partition(":") for script in _SCRIPTS.split()):
            share = _SHARE_OF_KANA if language == "ja" else _SHARE
            if len(re.findall(f"[{characters}]", sample[::step])) > share * letters / step > 0:
                return language
    if letters < (MIN_AGAINST if said else MIN_LETTERS):
        return said
    found = _by_letters(sample)
    if said in found[:CANDIDATES]:
        return said
    return found[0] if found else said


def primary(tag: str) -> str:
    """The language of a tag such as `de-AT`, in lower case; empty where it is none."""
    match = _TAG.match(tag.strip())
    return match[1].lower() if match else ""


#: The codes of ISO 639-1. Pages name languages that no statistics tell, so all of them can be asked for.
_CODES = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo "
    "es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki "
    "kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr "
    "nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg "
    "th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
CODES = frozenset(_CODES.split())


def _by_letters(sample: str) -> Sequence[str]:
    """The languages that a text is nearest to, by its letters and its frequent words; the nearest first."""
    from resiliparse.parse.lang import detect_fast

    lowered = sample.lower()
    nearest = detect_fast(lowered if sample.isupper() else sample, n_results=_ASKED_FOR)
    counts: dict[str, int] = {}
    by_word, words = _by_word(), lowered.split(None, _MOST_WORDS)[:_MOST_WORDS]
    for word in words:
        for language in by_word.get(word, ()):
            counts[language] = counts.get(language, 0) + 1
    # For each language that has one of the words, the share of them that are among its most frequent ones.
    told = {language: count / len(words) for language, count in counts.items()}
    found = [pair for pair in nearest if pair[0] in _LANGUAGES] if isinstance(nearest, list) else []
    found = found or [(name, 0) for name in told]  # of a short line in Devanagari the library says nothing
    if len(lowered) < _SURE and (met := _WRITTEN_IN.keys() & set(lowered)):
        strange = [(_WRITTEN_IN[letter], _LETTERS_COUNT * lowered.count(letter) // len(lowered)) for letter in met]
        found = [(name, ranks + sum(far for own, far in strange if name not in own)) for name, ranks in found]
    found.sort(key=lambda pair: pair[1] - _WORDS_COUNT * told.get(pair[0], 0.0))
    return [language for language, _ in found[:CANDIDATES]]


_WORDS = {
    "af": "die van en in is nie het dat vir te sy met hy was wat op om aan ek deur ook word hulle sal hierdie maar ons daar of as "
    "haar julle kan tot hê sê 'n",
    "ar": "في من على أن إلى التي عن مع هذا كان ما لا هذه الذي بعد كما بين قد أو كل ذلك لم هو ولا هي وقد كانت حتى منذ غير وفي إن "
    "عند قبل",
    "az": "və bu bir ilə üçün də ki o olan olaraq idi edir daha sonra onun çox var ən kimi hər isə amma lakin öz olur deyil həm "
    "nə qədər",
    "ba": "һәм был менән бер өсөн дә да тип ине ул булған шул башҡорт буйынса һуң түгел",
    "be": "і на у што не з гэта ў як да за па але яго яна ён быў для ад гэты былі таксама пры калі якія яны было мы вельмі ці каб "
    "пра",
    "bg": "и на да се от за е в с не са по че като си това го ще най но до към при или след също как ние който която които беше "
    "той",
    "br": "ar hag an e ha da en eus gant a ur zo war evit o d'ar met eo n'eo eno ket pe ez vez int bet din oa ul gwechall ivez",
    "ca": "de la el i que en els les per a un una amb és del al no es va com més dels però seva són aquest ha si també o han hi "
    "aquesta seu perquè molt ens",
    "cs": "a se v na je že s z do o i to ve pro za po jako by jsem ale které který jsou k bylo jeho byl od si tak když už nebo "
    "také při před jen podle jak až",
    "cv": "тата пулнӑ чӑваш вӑл ҫак мар пек ҫул хӑй",
    "cy": "yn y i a o ar yr ei mae am bod gan oedd eu hyn wedi ac at fel i'r o'r ond hefyd neu gyda wrth sydd yw nid dim hwn mewn "
    "ym cael mae'r",
    "da": "og i at er en det til af på for med den der som ikke de et var han har jeg fra kan vi om blev ved hun sin men også "
    "eller efter ud over hvor så meget blive noget ham nu",
    "de": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er hat dass sie "
    "nach wird bei einer um am sind noch wie einem über so zum kann wir ich aber",
    "en": "the of and to in is that for it as was with be by on not he this are or his from at which but have an they you had has "
    "we were been their more will would who if all so when can there",
    "eo": "la de kaj en estas al ke ne por mi li pri kiu el ĝi sed pli tiu kun sur oni estis ili ni kiel ankaŭ aŭ da kiuj sia tre "
    "ĉi nur povas",
    "es": "de la que el en y a los se del las un por con no una su para es al lo como más o pero sus le ha me si sin sobre este "
    "ya entre cuando todo esta ser son dos también fue había era muy hasta desde",
    "et": "ja on ei et see oli ka kui ta aga oma või mis ma siis tema seda kes nii mida veel selle nad olid ning pärast ole välja "
    "nagu kuid üle sest tuleb mille",
    "eu": "eta da ez bat du izan dira ere dute hau zuen egin baina edo ziren zen duen beste den baino dago gabe horren dela nola "
    "arte hori bere baten dituzte artean",
    "fa": "و در به از که این را با است برای آن یک خود تا بر هم نیز می شد شده ما اما یا باید کرد بود او کند ها دارد شود های بیش",
    "fi": "ja on ei että se hän oli mutta ovat joka myös kun kuin niin tai ole jos sen mukaan vain sekä olla jo jotka nyt ollut "
    "minä tämä mitä siitä voi hänen sitä kanssa vielä",
    "fo": "og í at er ein til á av fyri við tað sum ikki teir var hann hevur eg frá kann um ella eisini men hesi tey vóru nú øll "
    "sín tá bleiv føroyum",
    "fr": "de la le et les des en un du une que est dans qui par pour au il sur pas plus ne se ce avec sont son ou aux sa ses "
    "cette mais comme on nous été leur être elle fait même tout deux très c'est d'un",
    "fy": "de it en fan yn in is te dat foar op mei hy net oan ek as by der om troch út sy wie har syn wurdt nei mar hat wurde "
    "dy't foaral hawwe ha oer sa noch",
    "ga": "an na agus ar a is le i go ag do bhí sé sa de tá ní nó as ach mar chun seo sin siad ó faoi atá leis bhfuil raibh don "
    "den iad aon bheith cuid",
    "gd": "an agus na a air ann tha is bha le e gu do i ach aig mar gun bhon seo eil nach às chan airson cuideachd",
    "gl": "de a o que e do da en un os para unha no as na con por se non dos é ao como máis súa foi das pero este seu polo ou "
    "tamén pola moi nos estaba ata entre ser hai isto sobre",
    "ha": "da na ta a ya wannan cikin ne ce shi ba su don sun kuma wanda daga zuwa an yi amma ko suka",
    "he": "של את על לא הוא זה עם היא גם או אל אני יש כי כל אם היה אבל בין רק הם כך מה ידי אשר היתה לפני אחרי עוד לו",
    "hi": "के में है की को से का और पर यह ने कि एक हैं भी लिए नहीं तो कर इस हो था वह गया जो कहा जा अपने या कुछ किया उनके थे हुए "
    "बाद लेकिन थी थीं हम हमें साथ गए रहे जब क्योंकि आज करने",
    "hr": "i u je na se da su za s od a o koji što ne kao ili iz do te će bi po koja bio sve samo nije prema prije također bila "
    "više koje gdje tko uz kako ovo nisu vrlo tijekom",
    "hu": "a az és hogy nem is egy ez volt de meg van csak azt el vagy már mint még aki ha mert ki ezt akkor után lehet minden "
    "volna úgy között amely pedig sem kell így majd le",
    "id": "yang dan di itu dengan untuk tidak ini dari dalam akan pada juga saya ke karena ada mereka oleh lebih atau telah "
    "tersebut dia adalah sebagai bisa kami kita sudah dapat orang seperti menjadi tetapi bahwa",
    "is": "og að í á er sem við til var en um ekki með af það fyrir hann ég því þess eru eða hafa frá þeir hefur svo síðan verið "
    "þetta vera hún upp úr þá mjög",
    "it": "di e il la che in a è per un del non una i le con della si da sono al come più ha nel gli dei alla ma anche lo ad o "
    "questo delle se ci suo dal tra essere stato nella loro",
    "jv": "ing lan iku kang sing karo saka kanggo uga dadi ana wong iki kuwi ora utawa minangka marang taun nalika wis yaiku",
    "kk": "және мен бұл бір деп үшін да де болып бар ол осы болды еді арқылы бойынша кейін ғана емес оның көп өз қазақ туралы "
    "дейін сол жаңа әр деген",
    "ku": "û di de ku li ji bi ew ya yên jî wek bû ye ne dike ev her bo kurdî wî lê hatiye dema",
    "ky": "жана бул менен бир үчүн эле болгон деп да ал ошол кыргыз катары болуп анын эмес дагы бар алар боюнча кийин же",
    "la": "et in est non ad ut cum qui quod ex sed si ab esse quae de hoc sunt per aut nec etiam a quam se atque enim eius haec "
    "erat autem ac eo quo nam id me",
    "lb": "de an den ass d' fir vun mat net déi op eng e bei dat et dass um der sinn ze ech hunn ginn och awer wéi dem dëser gouf "
    "vum am no hien nach oder si gëtt",
    "lt": "ir kad į buvo su yra iš tai bet jo kaip o už ne apie tik jis po jau dėl savo jų ar būti nuo šio taip pat dar prie "
    "kuris labai iki arba kurie jei nėra",
    "lv": "un ir ka no ar par bija kas uz tā arī bet to nav tas tiek pie kā viņš lai pēc ko savu vai ļoti līdz tikai tika gan būs "
    "jau gada kurā es mēs",
    "mg": "ny sy dia tamin izay no fa amin ao ho tsy ireo azy ity mba eto ary hoe raha aza taona koa any isan'ny",
    "mk": "и на во се да од за е со не ги што го ќе како ја му по тоа сe но таа беше кои или која биде кој само тој сум има бил "
    "при исто овој",
    "mn": "нь ба энэ тэр юм байна бол болон гэж дээр байсан тэд хүн их нэг ч бас гэсэн мөн оны хийх хэд монгол болсон",
    "mr": "आणि आहे या च्या ते एक होते व तो ही आहेत नाही हे असे त्या होता केला त्यांनी तर पण म्हणून मात्र की होती झाली करून येथे "
    "आपल्या काही",
    "mt": "li ta u il- f' ma' fil- tal- għal kien biex dan huwa mill- bil- jew minn hija kienet dawn din hu mhux għandu iktar "
    "kull lill- bħala fuq kif imma wara",
    "ne": "र छ को मा पनि यो हो गर्न भने भएको थियो गरेको उनले ले छन् एक लागि गर्ने तर यस नै हुन् भएका त्यो गर्नु गरे छैन कि बाट हुने",
    "nl": "de van het een en in is dat op te zijn voor met die niet aan er om ook als dan maar bij nog uit naar hij door over "
    "wordt tot werd ze wel was je worden heeft of had deze kan",
    "no": "og i det er på til en som å for av at med de den har ikke et han om var fra jeg men seg kan så vi skal ble også eller "
    "når etter hun ut sin være blir noe opp hadde nå mot",
    "pl": "w i na z się do nie że jest to o jak za po a co od tak przez dla jego był tym ale już są być oraz czy ich ze które "
    "może tylko który jej przed także jako",
    "ps": "د په او چې کې ته دا له نه هم سره یې دي ده به و خو هغه پر دی شي وي شوي څخه یو کړي دې وو لپاره",
    "pt": "de a o que e do da em um para com não uma os no se na por mais as dos como mas foi ao ele das tem à seu sua ou ser "
    "quando muito há nos já está também só pelo pela até isso ela entre depois",
    "ro": "de și în a la cu care nu pe o că mai un din este sunt au fost pentru să se ce după am prin acest ca lui al dar fi era "
    "sau despre lor cel fie când ei această",
    "ru": "и в не на что с он по как из это за но к его от то так для же все о у мы был она было или только ещё бы вы при уже "
    "быть они до если также их когда",
    "sd": "۾ جي جو ۽ آهي کي ان سان تي هن به ته هو جا کان ڪري نه هڪ آهن پر لاءِ",
    "sk": "a v na sa je že s z do o i to vo pre za po ako by som ale ktoré ktorý sú k bolo jeho bol od si tak keď už alebo aj pri "
    "pred len podľa až nie sme",
    "sl": "in je v se na da so za ne pa ki z s tudi po bi ni ali kot iz o še ob kako do ko bil bilo pri le sem lahko svoj smo več "
    "kaj samo med zelo tega",
    "so": "waa ka ku iyo oo ee in uu la ay u waxa ah ayaa ma soo si kale ayay waxaa wuxuu loo isku aad badan dadka markii ahaa "
    "yahay inuu wax kala",
    "sq": "e të në i një për me që nga është u më si do nuk por ka ai këtë kjo janë ishte edhe ose se tij kur duke saj kanë mund "
    "shumë nëse unë para",
    "sr": "и у је да на се су за од са а о који што не као или из до ће би по која био све само није пре после њега где више то "
    "ово али када његов",
    "sv": "och i att det som en på är av för med till den har de inte om ett han men var jag sig från vi så kan när eller efter "
    "också hon ut nu skulle blev där vara mycket under mot",
    "sw": "ya na wa kwa katika ni la za kama hii watu cha ambayo kuwa pia hiyo huo yake hayo lakini au baada yao mwaka wake sana "
    "alikuwa hivyo kutoka zaidi vya kila ambao",
    "tg": "ва дар аз ба ки бо ин аст барои он худ то шуд буд тоҷикистон карда мешавад ҳам ё мебошад вай дигар",
    "tl": "ang ng sa na mga at ay si ito ni hindi may para siya kung isang o nang ko pa rin din lang niya kanilang mo ako iyon "
    "kanyang upang bilang kaya nila",
    "tr": "ve bir bu için da de ile çok olarak daha gibi ne en kadar sonra o olan değil ama her var olduğu ki şey ben mi göre "
    "diye bunu onun ya hiç iki kendi veya ise",
    "tt": "һәм бу белән бер өчен дә да дип иде ул булган шул татар буенча соң түгел аның бик ел бар инде",
    "ug": "ۋە بىر بۇ ئۇ بىلەن ئۈچۈن دەپ بولۇپ ھەم كېيىن يىلى شۇ قىلىپ بولغان",
    "uk": "і в на не що з у до це як та за його для від був але про він по я її або ми бо при всі ще було так вона вже які щоб "
    "коли також дуже їх тільки має мене є",
    "ur": "کے میں کی ہے کو سے نے کا اور پر یہ بھی کہ ہیں اس ایک نہیں کر تو ہو تھا وہ گیا جو کہا جا اپنے یا کچھ کیا ان تھے ہوئے "
    "بعد لیکن",
    "uz": "va bu bilan bir uchun ham edi deb yoki kerak esa u haqida ular keyin lekin bo'lgan boʻlib boʻlgan emas ega shu o'z oʻz "
    "eng qilish mumkin har oʻzbekiston yil",
    "vi": "và của là có các được cho một trong không những với người này đã khi từ như về để đến ở ra tại cũng vào năm sẽ nhưng "
    "nhiều bị trên phải hay",
    "yi": "די און פֿון איז אין דער צו דאָס אַ מיט ניט נישט האָט אויף וואָס זיך ער מען געווען אַז ווי פון איך זיי אויך אָבער נאָך "
    "אַן",
}

#: The languages that have such words.
_LANGUAGES = frozenset(_WORDS)


@cache
def _by_word() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for language, words in _WORDS.items():
        for word in words.split():
            found.setdefault(word, []).append(language)
    return found
